"""The durable record of a measurement: its layout, its store, and what it was taken in."""
