"""``python -m privloss``."""

from privloss.doors.cli import main

if __name__ == "__main__":
    main()
