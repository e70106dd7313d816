"""`python -m redmeter` is the command."""

from redmeter.cli import main

if __name__ == "__main__":
    main()
