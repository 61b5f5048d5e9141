from tests.storage.fake_index import own_folders

__all__ = ["own_folders"]
