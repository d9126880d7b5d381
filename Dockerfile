# docker build -t l20fs . && docker run --rm -v "$PWD:/data" l20fs select table.csv --target COLUMN
FROM python:3.13-slim@sha256:7c61056e61ac89e852de05f3dc6fa51a6dd2181797bceed46aa725dd7cb2cd3b AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY LICENSES LICENSES
COPY src src
RUN python -m venv /opt/l20fs && /opt/l20fs/bin/pip install --no-cache-dir ".[cli,plots,io,h5ad,zarr]"

FROM python:3.13-slim@sha256:7c61056e61ac89e852de05f3dc6fa51a6dd2181797bceed46aa725dd7cb2cd3b
COPY --from=build /opt/l20fs /opt/l20fs
RUN useradd --create-home --uid 1000 l20fs
USER 1000
WORKDIR /data
ENV PATH=/opt/l20fs/bin:$PATH PYTHONUNBUFFERED=1
ENTRYPOINT ["l20fs"]
CMD ["--help"]
