// Package deploy holds the CustomResourceDefinitions of Heliostat's kinds, as the chart installs them.
package deploy

import "embed"

// CRDs has a file for each CustomResourceDefinition, in the folder chart/crds.
//
//go:embed chart/crds/*.yaml
var CRDs embed.FS
