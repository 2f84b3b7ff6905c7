// Package api holds the REST contract. The document is the truth: package httpapi generates its types and routes from
// it, and serves these very bytes.
package api

import _ "embed" // for the document below

// Spec is openapi.yaml.
//
//go:embed openapi.yaml
var Spec []byte
