package apiv1

import (
	"cmp"
	"fmt"
)

// Error makes a Problem an error, so that the client can return it as it came.
func (p *Problem) Error() string {
	return fmt.Sprintf("%d: %s", p.Status, cmp.Or(p.Detail, p.Title))
}
