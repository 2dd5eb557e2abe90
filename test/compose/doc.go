// Package compose tests docker-compose.yml and the Dockerfile without Docker:
// the files are read as Docker reads them, and what they would run is run, with
// the very arguments, environment and configuration, against servers of the
// harness in the place of the containers.
package compose
