package apiv1

import (
	"cmp"
	"fmt"
)

// Error makes Problem an error, which the client returns.
func (p *Problem) Error() string {
	return fmt.Sprintf("%d: %s", p.Status, cmp.Or(p.Detail, p.Title))
}
