// libqkv.so is made of src/api and what it stands on; CMake wants a file of its own.
