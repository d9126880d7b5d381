"""``python -m l20fs``."""

from l20fs.cli import main

if __name__ == "__main__":
    main()
