package landing

import (
	"crypto/sha256"
	"fmt"
)

// ShapeClass is equal for shapes whose pods fit on the same nodes in the same way; of
// Neighbors, Beyond alone is compared. The zero value is the class of no shape.
type ShapeClass [sha256.Size]byte

// ClassOfShape returns the class of a shape. It takes some microseconds, so keep it.
func ClassOfShape(shape *PodShape) ShapeClass {
	own := *shape
	own.Share, own.Neighbors = nil, Neighbors{Beyond: shape.Neighbors.Beyond}
	text := fmt.Sprintf("%#v", own)
	if shape.Share != nil {
		text += fmt.Sprintf("%#v", *shape.Share)
	}
	return sha256.Sum256([]byte(text))
}
