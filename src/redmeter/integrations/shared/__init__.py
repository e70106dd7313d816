"""What several integrations use; applications import none of it."""
