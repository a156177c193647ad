"""Reading and writing: strict JSON, canonical bytes, regular files, durable replacement."""
