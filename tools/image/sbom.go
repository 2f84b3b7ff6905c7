package main

import (
	"bytes"
	"cmp"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// listType is the media type of CycloneDX in JSON. Registries and scanners use it to find the bill of materials.
const listType types.MediaType = "application/vnd.cyclonedx+json"

// rootsModule is the module that contains the certificates.
const rootsModule = "golang.org/x/crypto/x509roots/fallback"

// listOf returns the bill of materials of an image, as an artifact that refers to the image.
func listOf(image v1.Image, terms terms, programs ...compiled) (v1.Image, error) {
	subject, err := partial.Descriptor(image)
	if err != nil {
		return nil, err
	}
	bom, err := bomOf(subject.Digest, terms, programs)
	if err != nil {
		return nil, err
	}
	artifact := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
	artifact = mutate.ConfigMediaType(artifact, listType)
	if artifact, err = mutate.AppendLayers(artifact, static.NewLayer(bom, listType)); err != nil {
		return nil, err
	}
	subject.Platform = nil
	return mutate.Subject(artifact, *subject).(v1.Image), nil
}

// bomOf lists all modules that are linked into the programs, the standard library and the certificates, each with its
// licenses.
func bomOf(image v1.Hash, terms terms, programs []compiled) ([]byte, error) {
	main := programs[0]
	found := map[string]*cdx.Component{}
	for _, p := range programs {
		add(found, "stdlib", strings.TrimPrefix(p.info.GoVersion, "go"), p.path)
		for _, m := range p.info.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			add(found, m.Path, m.Version, p.path)
		}
	}
	roots, err := rootsVersion()
	if err != nil {
		return nil, err
	}
	add(found, rootsModule, roots, certificates)
	components := make([]cdx.Component, 0, len(found))
	for _, c := range found {
		if c.Licenses, err = terms.of(c.Name, c.Version); err != nil {
			return nil, err
		}
		components = append(components, *c)
	}
	slices.SortFunc(components, func(a, b cdx.Component) int { return cmp.Compare(a.BOMRef, b.BOMRef) })

	bom := cdx.NewBOM()
	bom.SerialNumber = serial(image)
	bom.Metadata = &cdx.Metadata{
		Timestamp: main.created().Format(time.RFC3339),
		Component: &cdx.Component{
			BOMRef: "heliostat", Type: cdx.ComponentTypeContainer, Name: "heliostat", Version: main.release,
			Licenses:   &cdx.Licenses{{License: &cdx.License{ID: license}}},
			PackageURL: "pkg:oci/heliostat@" + strings.Replace(image.String(), ":", "%3A", 1),
		},
	}
	bom.Components = &components
	var out bytes.Buffer
	encoder := cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON)
	encoder.SetPretty(true)
	if err := encoder.EncodeVersion(bom, cdx.SpecVersion1_6); err != nil {
		return nil, fmt.Errorf("writing CycloneDX: %w", err)
	}
	return out.Bytes(), nil
}

// add adds a module and the file in the image that contains it.
func add(found map[string]*cdx.Component, module, version, file string) {
	ref := "pkg:golang/" + module + "@" + strings.ReplaceAll(version, "+", "%2B")
	c := found[ref]
	if c == nil {
		c = &cdx.Component{BOMRef: ref, Type: cdx.ComponentTypeLibrary, Name: module, Version: version, PackageURL: ref,
			Evidence: &cdx.Evidence{Occurrences: &[]cdx.EvidenceOccurrence{}}}
		found[ref] = c
	}
	*c.Evidence.Occurrences = append(*c.Evidence.Occurrences, cdx.EvidenceOccurrence{Location: "/" + file})
}

// rootsVersion returns the version of the certificates that are linked into this program.
func rootsVersion() (string, error) {
	info, ok := debug.ReadBuildInfo()
	if ok {
		for _, m := range info.Deps {
			if m.Path == rootsModule {
				return m.Version, nil
			}
		}
	}
	return "", fmt.Errorf("the version of %s is not recorded in this program", rootsModule)
}

// serial returns the serial number of the bill of materials, a UUID of version 5 (RFC 9562). It is the same for the
// same image.
func serial(image v1.Hash) string {
	sum := sha1.Sum([]byte(image.String()))
	sum[6] = sum[6]&0x0f | 0x50
	sum[8] = sum[8]&0x3f | 0x80
	h := hex.EncodeToString(sum[:16])
	return "urn:uuid:" + strings.Join([]string{h[:8], h[8:12], h[12:16], h[16:20], h[20:]}, "-")
}
