// Package httpapi is both ends of the REST wire: the server that shows what Heliostat sees and decides and takes
// requests for capacity, and the Go client that the commands use. Shapes and routes are generated from
// api/openapi.yaml. The server decides nothing about scaling: it reads the last decision and writes requests down.
package httpapi

//go:generate go tool -modfile=../../tools/go.mod oapi-codegen -config ../../api/oapi-codegen.yaml ../../api/openapi.yaml
