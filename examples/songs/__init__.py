"""Songs that a machine heard: a Python step, a program, TypeScript, two people and Spark."""
