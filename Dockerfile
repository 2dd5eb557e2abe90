# The release binary alone in an empty image: no shell, no package manager, no
# demo. The first stage runs on the builder's own platform and compiles for the
# image's.
FROM --platform=$BUILDPLATFORM golang:1.26.8 AS build
WORKDIR /src
COPY . .
ARG VERSION=
ARG TARGETOS
ARG TARGETARCH
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    GOOS=$TARGETOS GOARCH=$TARGETARCH \
    CGO_ENABLED=0 go build -tags release -trimpath -ldflags "-s -w -X main.version=$VERSION" -o /cdcpub ./cmd/cdcpub

FROM scratch
# The certificates that postgres and kafka trust when no ca_file is configured.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /cdcpub /cdcpub
# The configuration file is looked for here: mount it as /etc/cdcpub/cdcpub.yaml.
WORKDIR /etc/cdcpub
# A number, so that orchestrators can tell that it is not root.
USER 65532:65532
EXPOSE 9477
# No HEALTHCHECK: the image also runs init and "slot watch". Kubernetes probes
# /livez and /readyz; with Docker, see docker-compose.yml.
ENTRYPOINT ["/cdcpub"]
