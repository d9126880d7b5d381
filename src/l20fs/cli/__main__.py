"""``python -m l20fs.cli``."""

from l20fs.cli import main

if __name__ == "__main__":
    main()
