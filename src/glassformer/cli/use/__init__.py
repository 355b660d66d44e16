"""The commands of the group `Use`, which train the demo, translate, and open the book."""
