// Package httpapi serves the REST API: what Heliostat observes and decides, and requests for capacity. Routes are
// generated from api/openapi.yaml; the shapes are in package apiv1, the Go client is in package client. The server
// decides nothing about scaling: it shows the last decision and stores requests. It must not import its client, the
// controller or Kubernetes; cmd joins them.
package httpapi

//go:generate go tool -modfile=../../tools/go.mod oapi-codegen -config ../../api/oapi-codegen.yaml ../../api/openapi.yaml
