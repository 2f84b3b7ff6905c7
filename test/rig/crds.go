package rig

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

// ResourceRequests are requests that have owners. customResources are the definitions of the installed kinds.
var (
	ResourceRequests = schema.GroupVersionResource{
		Group: "heliostat.dev", Version: "v1alpha1", Resource: "resourcerequests",
	}
	customResources = schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	}
)

// InstallCRDs installs the kinds of Heliostat's chart. It does not change existing ones.
func InstallCRDs(ctx context.Context, client dynamic.Interface) error {
	root, err := source(ctx)
	if err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(root, "deploy", "chart", "crds", "*.yaml"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("finding the chart's CRDs below %s: %d files, %w", root, len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("reading a CRD: %w", err)
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(strings.TrimPrefix(string(text), "---\n")), &object.Object); err != nil {
			return fmt.Errorf("reading CRD %s: %w", file, err)
		}
		_, err = client.Resource(customResources).Create(ctx, object, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("installing CRD %s: %w", object.GetName(), err)
		}
	}
	return nil
}

// RemoveCRDs removes the kinds and all their objects.
func RemoveCRDs(ctx context.Context, client dynamic.Interface) error {
	err := client.Resource(customResources).
		Delete(ctx, ResourceRequests.GroupResource().String(), metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("removing the CRD of ResourceRequests: %w", err)
	}
	return nil
}
