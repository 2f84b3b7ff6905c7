package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// user is the user of the programs. It owns no file in the image. The number is the one of distroless images.
// Kubernetes' runAsNonRoot requires a number.
const user = "65532:65532"

const (
	passwd = "root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/:/sbin/nologin\n"
	group  = "root:x:0:\nnonroot:x:65532:\n"
	// certificates is the first path at which Go and OpenSSL look.
	certificates = "etc/ssl/certs/ca-certificates.crt"
)

// entry is a file, directory or link in a layer. All entries belong to root, so that the programs cannot change the
// image.
type entry struct {
	name string
	mode int64
	link string
	data []byte
	dir  bool
}

// base returns the entries that every program needs: users, the certificate authorities for TLS, and /tmp. KubeRay
// mounts a volume below /tmp.
func base() []entry {
	return []entry{
		{name: "bin/", dir: true, mode: 0o755},
		{name: "etc/", dir: true, mode: 0o755},
		{name: "etc/group", mode: 0o644, data: []byte(group)},
		{name: "etc/passwd", mode: 0o644, data: []byte(passwd)},
		{name: "etc/ssl/", dir: true, mode: 0o755},
		{name: "etc/ssl/certs/", dir: true, mode: 0o755},
		{name: certificates, mode: 0o644, data: authorities()},
		{name: "tmp/", dir: true, mode: 0o1777},
		{name: "usr/", dir: true, mode: 0o755},
		{name: "usr/local/", dir: true, mode: 0o755},
		{name: "usr/local/bin/", dir: true, mode: 0o755},
	}
}

// authorities returns Mozilla's certificate authorities, as the Go project maintains them. It omits an authority that
// is trusted only for older certificates, because a file cannot express that limit.
func authorities() []byte {
	var all bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&all, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a buffer returns no error
		}
	}
	return all.Bytes()
}

// programEntries returns the entries of a program and its additional names.
func programEntries(c compiled, links ...string) ([]entry, error) {
	data, err := os.ReadFile(c.file)
	if err != nil {
		return nil, fmt.Errorf("reading the program: %w", err)
	}
	entries := []entry{{name: c.path, mode: 0o755, data: data}}
	for _, l := range links {
		entries = append(entries, entry{name: l, mode: 0o777, link: "/" + c.path})
	}
	return entries, nil
}

// layerOf packs entries. Every file has the epoch as its time, so two builds produce the same bytes.
func layerOf(entries []entry) (v1.Layer, error) {
	var packed bytes.Buffer
	w := tar.NewWriter(&packed)
	for _, e := range entries {
		h := &tar.Header{
			Name:     e.name,
			Mode:     e.mode,
			Size:     int64(len(e.data)),
			Typeflag: tar.TypeReg,
			ModTime:  time.Unix(0, 0),
			Format:   tar.FormatUSTAR,
		}
		switch {
		case e.dir:
			h.Typeflag = tar.TypeDir
		case e.link != "":
			h.Typeflag, h.Linkname = tar.TypeSymlink, e.link
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, fmt.Errorf("packing %s: %w", e.name, err)
		}
		if _, err := w.Write(e.data); err != nil {
			return nil, fmt.Errorf("packing %s: %w", e.name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("packing a layer: %w", err)
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer),
		tarball.WithCompressionLevel(gzip.DefaultCompression), tarball.WithCompressedCaching)
}
