FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=
RUN CGO_ENABLED=0 go build -tags release -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o /cdcpub ./cmd/cdcpub

FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /cdcpub /cdcpub
EXPOSE 9477
ENTRYPOINT ["/cdcpub"]
