package main

import (
	"context"
	"fmt"
	"os"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// writeLayout writes everything into a new directory that tools read as oci:DIRECTORY.
func (b built) writeLayout(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return fmt.Errorf("writing the layout: %s exists", dir)
	}
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return fmt.Errorf("writing the layout %s: %w", dir, err)
	}
	if err := path.AppendIndex(b.index); err != nil {
		return fmt.Errorf("writing the image into the layout %s: %w", dir, err)
	}
	for _, list := range b.lists {
		if err := path.AppendImage(list); err != nil {
			return fmt.Errorf("writing a bill of materials into the layout %s: %w", dir, err)
		}
	}
	return nil
}

// push uploads the image with its tag, and then the artifacts that refer to it. If a registry has no referrers API,
// push uses the fallback tags of the distribution specification.
func (b built) push(ctx context.Context, reference string) error {
	tag, err := tagOf(reference)
	if err != nil {
		return err
	}
	options := []remote.Option{
		remote.WithContext(ctx),
		remote.WithAuthFromKeychain(authn.DefaultKeychain),
		remote.WithReferrersTagFallback(true),
	}
	if err := remote.WriteIndex(tag, b.index, options...); err != nil {
		return fmt.Errorf("pushing %s: %w", tag, err)
	}
	for _, list := range b.lists {
		digest, err := list.Digest()
		if err != nil {
			return fmt.Errorf("pushing the bill of materials of %s: %w", tag, err)
		}
		if err := remote.Write(tag.Digest(digest.String()), list, options...); err != nil {
			return fmt.Errorf("pushing the bill of materials of %s: %w", tag, err)
		}
	}
	return nil
}

func tagOf(reference string) (name.Tag, error) {
	tag, err := name.NewTag(reference, name.StrictValidation)
	if err != nil {
		return name.Tag{}, fmt.Errorf("reading the tag to push to: %w; want REPOSITORY:TAG", err)
	}
	return tag, nil
}
