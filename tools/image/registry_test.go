package main

import (
	"bytes"
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/distribution/distribution/v3/configuration"
	"github.com/distribution/distribution/v3/registry/handlers"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/inmemory"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"github.com/sirupsen/logrus"
)

// registries returns two real registries: one with the referrers API and one without.
func registries(ctx context.Context) map[string]http.Handler {
	logrus.SetOutput(io.Discard)
	config := &configuration.Configuration{Storage: configuration.Storage{"inmemory": nil,
		"maintenance": configuration.Parameters{"uploadpurging": map[any]any{"enabled": false}}}}
	config.HTTP.Secret = "of this test alone"
	return map[string]http.Handler{
		"go-containerregistry": registry.New(registry.WithReferrersSupport(true), registry.Logger(log.New(io.Discard, "", 0))),
		"distribution":         handlers.NewApp(ctx, config),
	}
}

func TestWhatIsPulledFromARegistryIsValidAndWhatWasPushed(t *testing.T) {
	whole := wholeImage(t)
	for kind, handler := range registries(t.Context()) {
		t.Run(kind, func(t *testing.T) {
			server := httptest.NewServer(handler)
			defer server.Close()
			reference := strings.TrimPrefix(server.URL, "http://") + "/platform/heliostat:v1"
			must(t, whole.push(t.Context(), reference))
			tag, err := name.NewTag(reference)
			must(t, err)
			pulled, err := remote.Index(tag, remote.WithContext(t.Context()))
			must(t, err)
			if err := validate.Index(pulled); err != nil {
				t.Errorf("the pulled image is not valid: %v", err)
			}
			if digest, err := pulled.Digest(); err != nil || digest != whole.digest {
				t.Errorf("pulled %s, pushed %s (%v)", digest, whole.digest, err)
			}
			for i, arch := range platforms {
				if got, want := referredList(t, tag, imageFor(t, pulled, arch)), listed(t, whole.lists[i]); got != want {
					t.Errorf("%s: the bill of materials came back as %.100q, want %.100q", arch, got, want)
				}
			}
		})
	}
}

// referredList returns the bill of materials that refers to an image. It searches as a scanner does, and fails unless
// there is exactly one.
func referredList(t *testing.T, tag name.Tag, image v1.Image) string {
	t.Helper()
	digest, err := image.Digest()
	must(t, err)
	referrers, err := remote.Referrers(tag.Digest(digest.String()), remote.WithContext(t.Context()), remote.WithReferrersTagFallback(true),
		remote.WithFilter("artifactType", string(listType)))
	must(t, err)
	manifest, err := referrers.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 {
		t.Fatalf("%d artifacts refer to %s: %v", len(manifest.Manifests), digest, err)
	}
	list, err := remote.Image(tag.Digest(manifest.Manifests[0].Digest.String()), remote.WithContext(t.Context()))
	must(t, err)
	return listed(t, list)
}

func TestALayoutHoldsTheImageAndItsLists(t *testing.T) {
	whole, dir := wholeImage(t), filepath.Join(t.TempDir(), "layout")
	must(t, whole.writeLayout(dir))
	index, err := layout.ImageIndexFromPath(dir)
	must(t, err)
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1+len(platforms) || manifest.Manifests[0].Digest != whole.digest {
		t.Errorf("holds %+v: %v", manifest.Manifests, err)
	}
	if err := whole.writeLayout(dir); err == nil {
		t.Error("a second image was written over the first")
	}
}

func TestWrongArgumentsAreReportedBeforeAnythingIsBuilt(t *testing.T) {
	for want, args := range map[string][]string{
		"give -out, -push or both": nil,
		"REPOSITORY:TAG":           {"-push", "registry.example/heliostat"},
		"exists":                   {"-out", os.TempDir()},
	} {
		var out bytes.Buffer
		if err := run(t.Context(), append(args, "-source", "/nothing-here"), &out); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q in it", args, err, want)
		}
	}
}
