"""The command line, for ``python -m expost``."""

from expost.cli.main import main

if __name__ == "__main__":
    main()
