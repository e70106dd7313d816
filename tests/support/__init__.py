"""What the tests stand on: private servers, a proxy that breaks connections, bounded waiting."""
