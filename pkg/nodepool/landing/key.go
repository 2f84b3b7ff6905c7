package landing

import (
	"crypto/sha256"
	"fmt"
)

// Key is equal for shapes whose pods fit on the same nodes in the same way (KeyOf), and for questions about the same
// Nodes that have the same answer (Ask.Key). The zero value is the key of nothing.
type Key [sha256.Size]byte

// KeyOf returns the key of a shape; of Neighbors, Beyond alone is compared. It takes some microseconds, so keep it.
func KeyOf(shape *PodShape) Key {
	own := *shape
	own.Share, own.Neighbors = nil, Neighbors{Beyond: shape.Neighbors.Beyond}
	text := fmt.Sprintf("%#v", own)
	if shape.Share != nil {
		text += fmt.Sprintf("%#v", *shape.Share)
	}
	return sha256.Sum256([]byte(text))
}
