"""What plan_mode_nb costs, beside its peers: ``python -m benchmarks``. A measurement is a module with ``measure()``, in its own process."""
