"""``python -m perago``."""

from perago.cli import main

if __name__ == "__main__":
    main()
