"""SEAMS: the protocols and registries that loop, plan and features meet in. They know these, never each other."""
