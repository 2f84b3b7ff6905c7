// Package api holds the REST contract. The document is the source of truth: the types and routes of package api are
// generated from it, and the server serves it unchanged.
package api

import _ "embed" // embeds the document below

// Spec is openapi.yaml.
//
//go:embed openapi.yaml
var Spec []byte
