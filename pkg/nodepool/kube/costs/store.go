// Package costs keeps a text for each RayCluster in ConfigMaps of Heliostat's own namespace. It must not know what the
// texts say.
package costs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// Parts is the number of ConfigMaps. It is fixed, so that RBAC can name them. Each holds a part of the RayClusters.
const Parts = 8

// room is how many bytes the texts of one ConfigMap may take together; Kubernetes stores 1 MiB.
const room = 900 << 10

// ConfigMaps is the part of client-go's interface that a Store needs.
type ConfigMaps interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (*corev1.ConfigMap, error)
	Create(ctx context.Context, object *corev1.ConfigMap, options metav1.CreateOptions) (*corev1.ConfigMap, error)
	Patch(
		ctx context.Context, name string, kind types.PatchType, patch []byte, options metav1.PatchOptions,
		subresources ...string,
	) (*corev1.ConfigMap, error)
}

// Store holds texts in ConfigMaps. Several processes may use the same ones, each for RayClusters of its own: a write
// replaces the texts of single RayClusters. Its methods are safe for concurrent use.
type Store struct {
	client ConfigMaps
	name   string

	mu sync.Mutex
	// keys are the texts that each ConfigMap had when it was last read or written, and what a write did not add.
	keys [Parts]map[string]bool
}

// NewStore returns a Store whose ConfigMaps are named NAME-0 and so on.
func NewStore(client ConfigMaps, name string) *Store { return &Store{client: client, name: name} }

// Names returns the names of the ConfigMaps.
func (s *Store) Names() []string {
	names := make([]string, Parts)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%d", s.name, i)
	}
	return names
}

// partOf returns the ConfigMap that holds a RayCluster's text.
func partOf(key nodepool.ClusterKey) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key.String())) // never fails
	return int(h.Sum32() % Parts)
}

// separator is between namespace and name in keys of ConfigMaps. Neither can contain it.
const separator = "_"

// others is in place of the parentheses around a namespace or name that stands for several.
const others = separator + separator

func keyText(key nodepool.ClusterKey) string {
	bare := strings.NewReplacer("(", others, ")", "")
	return bare.Replace(key.Namespace) + separator + bare.Replace(key.Name)
}

func keyOf(text string) (nodepool.ClusterKey, bool) {
	text, several := strings.CutPrefix(text, others)
	namespace, name, found := strings.Cut(text, separator)
	found = found && namespace != "" && name != ""
	if several {
		namespace = "(" + namespace + ")"
	}
	if rest, several := strings.CutPrefix(name, others); several {
		name = "(" + rest + ")"
	}
	return nodepool.ClusterKey{Namespace: namespace, Name: name}, found
}

// Room returns how many bytes the text of one RayCluster may take: its share of the ConfigMap that holds it.
func (s *Store) Room(key nodepool.ClusterKey) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	const least = 16 // with fewer RayClusters, none takes all of it
	return room / max(len(s.keys[partOf(key)]), least)
}

// Load returns all texts. Keys that no Store has written are left out. nodepool.ErrDenied: this process may not read
// the ConfigMaps.
func (s *Store) Load(ctx context.Context) (map[nodepool.ClusterKey][]byte, error) {
	texts := map[nodepool.ClusterKey][]byte{}
	for i, name := range s.Names() {
		object, err := s.client.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, classified("reading", name, err)
		}
		s.count(i, object)
		for text, value := range object.BinaryData {
			if key, ours := keyOf(text); ours {
				texts[key] = value
			}
		}
	}
	return texts, nil
}

func (s *Store) count(part int, object *corev1.ConfigMap) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys[part] = make(map[string]bool, len(object.BinaryData))
	for key := range object.BinaryData {
		s.keys[part][key] = true
	}
}

// expect counts texts that are to be added, so that their share becomes smaller if they do not fit.
func (s *Store) expect(part int, texts map[string][]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, text := range texts {
		if len(text) > 0 {
			if s.keys[part] == nil {
				s.keys[part] = map[string]bool{}
			}
			s.keys[part][key] = true
		}
	}
}

// Save replaces texts; an empty one removes the RayCluster's. All that can be saved is saved. nodepool.ErrFull: texts
// of one ConfigMap do not fit; Room says from then on how large they may be.
func (s *Store) Save(ctx context.Context, texts map[nodepool.ClusterKey][]byte) error {
	var parts [Parts]map[string][]byte
	for key, text := range texts {
		part := &parts[partOf(key)]
		if *part == nil {
			*part = map[string][]byte{}
		}
		(*part)[keyText(key)] = text
	}
	var errs []error
	for i, name := range s.Names() {
		if len(parts[i]) > 0 {
			errs = append(errs, s.save(ctx, i, name, parts[i]))
		}
	}
	return errors.Join(errs...)
}

func (s *Store) save(ctx context.Context, part int, name string, texts map[string][]byte) error {
	s.expect(part, texts)
	values := make(map[string]any, len(texts))
	for key, text := range texts {
		values[key] = nil // removes it
		if len(text) > 0 {
			values[key] = text
		}
	}
	patch, err := json.Marshal(map[string]any{"binaryData": values})
	if err != nil {
		return fmt.Errorf("writing a patch of ConfigMap %s: %w", name, err)
	}
	options := metav1.PatchOptions{FieldManager: nodepool.FieldManager}
	object, err := s.client.Patch(ctx, name, types.MergePatchType, patch, options)
	if apierrors.IsNotFound(err) {
		kept := maps.Clone(texts)
		maps.DeleteFunc(kept, func(_ string, text []byte) bool { return len(text) == 0 })
		if len(kept) == 0 {
			return nil
		}
		object, err = s.client.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{
				"kubernetes.io/description": "What RayClusters have cost, by `autoscaler costs`. Written by Heliostat.",
			}},
			BinaryData: kept,
		}, metav1.CreateOptions{FieldManager: nodepool.FieldManager})
		if apierrors.IsAlreadyExists(err) { // another process was first
			object, err = s.client.Patch(ctx, name, types.MergePatchType, patch, options)
		}
	}
	if err != nil {
		return classified("writing", name, err)
	}
	s.count(part, object)
	return nil
}

func classified(doing, name string, err error) error {
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%s ConfigMap %s: %w: %w", doing, name, nodepool.ErrDenied, err)
	case apierrors.IsInvalid(err), apierrors.IsRequestEntityTooLargeError(err):
		return fmt.Errorf("%s ConfigMap %s: %w: %w", doing, name, nodepool.ErrFull, err)
	}
	return fmt.Errorf("%s ConfigMap %s: %w", doing, name, err)
}
