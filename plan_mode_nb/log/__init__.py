"""FACTS: the append-only session log, its vocabulary and its rules. Nothing here knows Jupyter, a model or a plugin."""
