"""Task modules of the contenders; each runs in an environment of its own."""
