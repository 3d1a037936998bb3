# qkv from Debian alone:  docker build -t qkv .    docker run --rm -it qkv run world "Mia has a cat."
FROM debian:12 AS build
COPY . /qkv
# ./qkv installs the packages of scripts/packages.txt, builds, and makes the Debian package.
RUN /qkv/qkv package

FROM debian:12-slim
COPY --from=build /qkv/build/release/qkv_*.deb /tmp/
RUN apt-get update && apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends /tmp/qkv_*.deb && rm -rf /tmp/*.deb /var/lib/apt/lists/*
ENTRYPOINT ["qkv"]
CMD ["help"]
