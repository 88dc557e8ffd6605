"""The public fakes and the contract suites: every seam's fake passes the same suite as the real thing."""
