"""``python -m plan_mode_nb``: the command line."""

from plan_mode_nb.hosts.cli.main import main

if __name__ == "__main__":
    main()
