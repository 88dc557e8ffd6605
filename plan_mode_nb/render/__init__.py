"""PURE: events and text to static displays and text. No Jupyter, no IO, no clock, no randomness; the same input, the same bytes."""
