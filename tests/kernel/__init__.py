"""Tests that start a real kernel. `driver.Kernel` drives one; `kernel_bodies` is imported inside it."""
