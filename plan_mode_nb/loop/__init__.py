"""DRIVER: turns, steps, tool calls and cancellation. Knows the seams, and neither plan mode nor any feature."""
