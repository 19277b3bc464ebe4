"""For papers: curves of a plan as pictures, frames and LaTeX tables, every number rounded to its safe side."""
