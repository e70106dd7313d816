# The example examples/fastapi_shop, on top of the image of Redmeter's page: see compose.yaml.

FROM python:3.13-slim AS build
WORKDIR /source
COPY . .
RUN python -m pip wheel --no-cache-dir --constraint constraints.txt --wheel-dir /wheels \
    ".[standard]" fastapi

FROM python:3.13-slim
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels \
    python -m pip install --no-cache-dir --no-index --no-compile /wheels/*.whl
WORKDIR /shop
COPY examples/fastapi_shop/app.py app.py
ENV PYTHONDONTWRITEBYTECODE=1
USER 10001:10001
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/', timeout=4)"]
# Reached from outside of its container only through the port that compose.yaml opens on loopback.
CMD ["python", "-m", "uvicorn", "app:app", "--host", "0.0.0.0", "--port", "8000"]
