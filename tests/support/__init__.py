"""What tests share: oracles, random cases, games."""
