package gpuinfo

// board describes how a kind of card partitions its memory. The card is an axis of units. An instance occupies a
// contiguous range of units that begins at one of the starts of its shape.
type board struct {
	units int
	// slices is the number of compute slices of a whole card.
	slices int
	shapes map[string]shape
}

// shape holds the properties of a profile that all products of a board share.
type shape struct {
	// id is NVML's number of the GPU instance profile, or noID.
	id int
	// slices counts compute slices; size is in units of the axis.
	slices, size int
	starts       []int
	// most is the maximum number of instances on one card.
	most   int
	source string
}

const lgipp = "nvidia-smi mig -lgipp and -lgip on real cards"

// noID is the id of a profile whose NVML number no source documents.
const noID = -1

// sevenSlices describes the boards from A100 to GB300. The lgipp output is from A100 40/80, H100 80 and H100 NVL. The
// tables of go-nvml and of the GPU operator agree for H100 and GB200. For H200, B200, B300 and GB300, only the counts
// in the MUG and in mig-parted are available; they agree with these placements.
var sevenSlices = &board{units: 8, slices: 7, shapes: map[string]shape{
	"1g":    {19, 1, 1, []int{0, 1, 2, 3, 4, 5, 6}, 7, lgipp},
	"1g+me": {20, 1, 1, []int{0, 1, 2, 3, 4, 5, 6}, 1, lgipp},
	// "1g REV2": one compute slice with twice the memory.
	"1g double": {15, 1, 2, []int{0, 2, 4, 6}, 4, lgipp},
	"2g":        {14, 2, 2, []int{0, 2, 4}, 3, lgipp},
	"3g":        {9, 3, 4, []int{0, 4}, 2, lgipp},
	"4g":        {5, 4, 4, []int{0}, 1, lgipp},
	"7g":        {0, 7, 8, []int{0}, 1, lgipp},
}}

// fourSlices describes the A30. Very old drivers print the starts 0, 1, 4, 5 for 1g, which are obsolete.
var fourSlices = &board{units: 4, slices: 4, shapes: map[string]shape{
	"1g":    {14, 1, 1, []int{0, 1, 2, 3}, 4, lgipp},
	"1g+me": {21, 1, 1, []int{0, 1, 2, 3}, 1, lgipp},
	"2g":    {5, 2, 2, []int{0, 2}, 2, lgipp},
	"2g+me": {6, 2, 2, []int{0, 2}, 1, lgipp},
	"4g":    {0, 4, 4, []int{0}, 1, lgipp},
}}

// fourSlicesPro describes the RTX PRO 6000 Blackwell.
var fourSlicesPro = &board{units: 12, slices: 4, shapes: map[string]shape{
	"1g":        {14, 1, 3, []int{0, 3, 6, 9}, 4, lgipp},
	"1g+me":     {21, 1, 3, []int{0, 3, 6, 9}, 1, lgipp},
	"1g+gfx":    {47, 1, 3, []int{0, 3, 6, 9}, 4, lgipp},
	"1g+me.all": {65, 1, 3, []int{0, 3, 6, 9}, 1, lgipp},
	"1g-me":     {67, 1, 3, []int{0, 3, 6, 9}, 4, lgipp},
	"2g":        {5, 2, 6, []int{0, 6}, 2, lgipp},
	"2g+gfx":    {35, 2, 6, []int{0, 6}, 2, lgipp},
	"2g+me.all": {64, 2, 6, []int{0, 6}, 1, lgipp},
	"2g-me":     {66, 2, 6, []int{0, 6}, 2, lgipp},
	"4g":        {0, 4, 12, []int{0}, 1, lgipp},
	"4g+gfx":    {32, 4, 12, []int{0}, 1, lgipp},
}}

// twoSlices describes the RTX PRO 5000 and 4500. Their counts are published, but not their starts. Here one unit is
// half a card: 2g has all of the memory and 1g has half of it. The same sets of instances fit, whatever units the card
// uses.
var twoSlices = &board{units: 2, slices: 2, shapes: map[string]shape{
	"1g": {noID, 1, 1, []int{0, 1}, 2, "MUG: counts"},
	"2g": {noID, 2, 2, []int{0}, 1, "MUG: counts"},
}}
