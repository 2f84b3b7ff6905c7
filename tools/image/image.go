package main

import (
	"context"
	"fmt"
	"maps"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const title = "Heliostat"

// built is the image: an index with one image per platform, and the artifacts that refer to these images.
type built struct {
	index  v1.ImageIndex
	digest v1.Hash
	// lists are the software bills of materials. The subject of each one is the image of its platform.
	lists []v1.Image
}

// build builds the image for the given platforms from a checkout. work is a directory for compiled programs.
func build(ctx context.Context, source, work string, platforms []string) (built, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	b := built{}
	for _, arch := range platforms {
		p, err := buildPart(ctx, source, work, arch)
		if err != nil {
			return built{}, err
		}
		platform := v1.Platform{OS: "linux", Architecture: arch}
		index = mutate.AppendManifests(index,
			mutate.IndexAddendum{Add: p.image, Descriptor: v1.Descriptor{Platform: &platform}})
		index = mutate.Annotations(index, p.labels).(v1.ImageIndex)
		b.lists = append(b.lists, p.list)
	}
	b.index = index
	var err error
	b.digest, err = b.index.Digest()
	return b, err
}

// part is the image of one platform.
type part struct {
	image  v1.Image
	list   v1.Image
	labels map[string]string
}

func buildPart(ctx context.Context, source, work, arch string) (part, error) {
	shell, err := bash.compile(ctx, source, work, arch)
	if err != nil {
		return part{}, err
	}
	main, err := autoscaler.compile(ctx, source, work, arch)
	if err != nil {
		return part{}, err
	}
	terms, err := termsOf(ctx, source, arch)
	if err != nil {
		return part{}, err
	}
	p := part{labels: annotations(main)}
	layers, err := layersOf(shell, main, terms)
	if err != nil {
		return part{}, err
	}
	if p.image, err = assemble(layers, arch, main.created(), p.labels); err != nil {
		return part{}, fmt.Errorf("assembling the image for %s: %w", arch, err)
	}
	if p.list, err = listOf(p.image, terms, main, shell); err != nil {
		return part{}, fmt.Errorf("listing what is in the image for %s: %w", arch, err)
	}
	return p, nil
}

// layersOf returns the layers, those that change least often first.
func layersOf(shell, main compiled, terms terms) ([]v1.Layer, error) {
	shellEntries, err := programEntries(shell)
	if err != nil {
		return nil, err
	}
	// KubeRay starts Ray's autoscaler under the name `ray`.
	mainEntries, err := programEntries(main, "usr/local/bin/ray")
	if err != nil {
		return nil, err
	}
	mainEntries = append(terms.entries(), mainEntries...)
	var layers []v1.Layer
	for _, entries := range [][]entry{base(), shellEntries, mainEntries} {
		l, err := layerOf(entries)
		if err != nil {
			return nil, err
		}
		layers = append(layers, l)
	}
	return layers, nil
}

// assemble combines layers and configuration. The image starts `autoscaler` with the container's args.
func assemble(layers []v1.Layer, arch string, created time.Time, labels map[string]string) (v1.Image, error) {
	image := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
	image = mutate.ConfigMediaType(image, types.OCIConfigJSON)
	image, err := mutate.ConfigFile(image, &v1.ConfigFile{
		OS: "linux", Architecture: arch, Created: v1.Time{Time: created}, RootFS: v1.RootFS{Type: "layers"},
		Config: v1.Config{
			User: user, WorkingDir: "/", Entrypoint: []string{"/" + autoscaler.path},
			Env:          []string{"PATH=/usr/local/bin:/usr/bin:/bin"},
			ExposedPorts: map[string]struct{}{"8080/tcp": {}, "8081/tcp": {}, "8090/tcp": {}},
			Labels:       maps.Clone(labels),
		},
	})
	if err != nil {
		return nil, err
	}
	var adds []mutate.Addendum
	for i, l := range layers {
		adds = append(adds, mutate.Addendum{Layer: l, History: v1.History{
			Created: v1.Time{Time: created}, CreatedBy: []string{"users and certificates", "shell", "autoscaler"}[i]}})
	}
	if image, err = mutate.Append(image, adds...); err != nil {
		return nil, err
	}
	return mutate.Annotations(image, labels).(v1.Image), nil
}

// annotations returns the annotations of the OCI image specification. The index and each image have them, and each
// image's configuration has them as labels.
func annotations(main compiled) map[string]string {
	all := map[string]string{
		"org.opencontainers.image.title":       title,
		"org.opencontainers.image.description": "Scales Ray clusters on Kubernetes to what Ray asks for",
		"org.opencontainers.image.version":     main.release,
		"org.opencontainers.image.licenses":    license,
		"org.opencontainers.image.revision":    main.setting("vcs.revision"),
		"org.opencontainers.image.created":     main.created().Format(time.RFC3339),
	}
	maps.DeleteFunc(all, func(_, value string) bool { return value == "" })
	return all
}
