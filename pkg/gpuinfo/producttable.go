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

// productTable has one row for each product, with one row for each of its profiles: the name, the shape on the board,
// the memory of an instance and its multiprocessors. 0 means that no source documents the value. Memory is from real
// cards, and is the minimum if drivers differ. Values that were published in GiB with two decimal places are exact to a
// few MiB. The source of a product applies to all of its profiles.
var productTable = []struct {
	name     string
	gb       int
	board    *board
	source   string
	profiles []profileRow
}{
	{"A30", 24, fourSlices, "MUG; nvidia-smi mig -lgip on a card", []profileRow{
		{"1g.6gb", "1g", 5949, 14},
		{"1g.6gb+me", "1g+me", 5949, 14},
		{"2g.12gb", "2g", 11970, 28},
		{"2g.12gb+me", "2g+me", 11970, 28},
		{"4g.24gb", "4g", 24002, 56},
	}},
	{"A100 40GB", 40, sevenSlices, "MUG; node labels; 1g.10gb and +me need driver R525 and R470", []profileRow{
		{"1g.5gb", "1g", 4864, 14},
		{"1g.5gb+me", "1g+me", 4864, 14},
		{"1g.10gb", "1g double", 9856, 14},
		{"2g.10gb", "2g", 9856, 28},
		{"3g.20gb", "3g", 19968, 42},
		{"4g.20gb", "4g", 19968, 56},
		{"7g.40gb", "7g", 40192, 98},
	}},
	{"A100 80GB", 80, sevenSlices, "MUG; nvidia-smi mig -lgip on a card", []profileRow{
		{"1g.10gb", "1g", 9728, 14},
		{"1g.10gb+me", "1g+me", 9728, 14},
		{"1g.20gb", "1g double", 19968, 14},
		{"2g.20gb", "2g", 19968, 28},
		{"3g.40gb", "3g", 40192, 42},
		{"4g.40gb", "4g", 40192, 56},
		{"7g.80gb", "7g", 80384, 98},
	}},
	{"H100 80GB", 80, sevenSlices, "MUG; node labels; SMs of the SXM5 card, a 1g of the PCIe card has 14", []profileRow{
		{"1g.10gb", "1g", 9984, 16},
		{"1g.10gb+me", "1g+me", 9984, 16},
		{"1g.20gb", "1g double", 20096, 26},
		{"2g.20gb", "2g", 20096, 32},
		{"3g.40gb", "3g", 40320, 60},
		{"4g.40gb", "4g", 40320, 64},
		{"7g.80gb", "7g", 81152, 132},
	}},
	{"H100 94GB", 94, sevenSlices, "MUG; nvidia-smi mig -lgip on an H100 NVL", []profileRow{
		{"1g.12gb", "1g", 11008, 0},
		{"1g.12gb+me", "1g+me", 11008, 0},
		{"1g.24gb", "1g double", 22138, 0},
		{"2g.24gb", "2g", 22138, 0},
		{"3g.47gb", "3g", 47493, 0},
		{"4g.47gb", "4g", 47493, 0},
		{"7g.94gb", "7g", 0, 0},
	}},
	{"H100 96GB", 96, sevenSlices, "MUG; nvidia-smi mig -lgip on a GH200", []profileRow{
		{"1g.12gb", "1g", 11264, 0},
		{"1g.12gb+me", "1g+me", 11264, 0},
		{"1g.24gb", "1g double", 23552, 0},
		{"2g.24gb", "2g", 23552, 0},
		{"3g.48gb", "3g", 47616, 0},
		{"4g.48gb", "4g", 47616, 0},
		{"7g.96gb", "7g", 95232, 0},
	}},
	{"H20 96GB", 96, sevenSlices, "MUG; memory as on the GH200 with 96 GB", []profileRow{
		{"1g.12gb", "1g", 11264, 0},
		{"1g.12gb+me", "1g+me", 11264, 0},
		{"1g.24gb", "1g double", 23552, 0},
		{"2g.24gb", "2g", 23552, 0},
		{"3g.48gb", "3g", 47616, 0},
		{"4g.48gb", "4g", 47616, 0},
		{"7g.96gb", "7g", 95232, 0},
	}},
	{"GH200 144GB", 144, sevenSlices, "mig-parted; memory in part from a card", []profileRow{
		{"1g.18gb", "1g", 17920, 0},
		{"1g.18gb+me", "1g+me", 17920, 0},
		{"1g.36gb", "1g double", 36096, 0},
		{"2g.36gb", "2g", 36096, 0},
		{"3g.72gb", "3g", 0, 0},
		{"4g.72gb", "4g", 0, 0},
		{"7g.144gb", "7g", 0, 0},
	}},
	{"H200", 141, sevenSlices, "MUG; nvidia-smi mig -lgip on a card", []profileRow{
		{"1g.18gb", "1g", 16384, 16},
		{"1g.18gb+me", "1g+me", 16384, 16},
		{"1g.35gb", "1g double", 33024, 26},
		{"2g.35gb", "2g", 33024, 32},
		{"3g.71gb", "3g", 71168, 60},
		{"4g.71gb", "4g", 71168, 64},
		{"7g.141gb", "7g", 143360, 132},
	}},
	{"H20 141GB", 141, sevenSlices, "MUG; as the H200, with fewer SMs", []profileRow{
		{"1g.18gb", "1g", 16384, 0},
		{"1g.18gb+me", "1g+me", 16384, 0},
		{"1g.35gb", "1g double", 33024, 0},
		{"2g.35gb", "2g", 33024, 0},
		{"3g.71gb", "3g", 71168, 0},
		{"4g.71gb", "4g", 71168, 0},
		{"7g.141gb", "7g", 143360, 0},
	}},
	{"B200", 180, sevenSlices, "MUG; memory in part from a card, by the older driver, which leaves less", []profileRow{
		{"1g.23gb", "1g", 20992, 18},
		{"1g.23gb+me", "1g+me", 20992, 18},
		{"1g.45gb", "1g double", 45312, 30},
		{"2g.45gb", "2g", 45312, 36},
		{"3g.90gb", "3g", 0, 0},
		{"4g.90gb", "4g", 0, 0},
		{"7g.180gb", "7g", 0, 0},
	}},
	{"GB200", 186, sevenSlices,
		"mig-parted; memory from a card; older drivers name 1g.24gb, 3g.95gb, 4g.95gb and 7g.189gb", []profileRow{
			{"1g.23gb", "1g", 20480, 0},
			{"1g.23gb+me", "1g+me", 20480, 0},
			{"1g.47gb", "1g double", 46592, 32},
			{"2g.47gb", "2g", 46592, 38},
			{"3g.93gb", "3g", 0, 0},
			{"4g.93gb", "4g", 0, 0},
			{"7g.186gb", "7g", 0, 0},
		}},
	{"B300", 269, sevenSlices, "mig-parted", []profileRow{
		{"1g.34gb", "1g", 0, 0},
		{"1g.34gb+me", "1g+me", 0, 0},
		{"1g.67gb", "1g double", 0, 0},
		{"2g.67gb", "2g", 0, 0},
		{"3g.135gb", "3g", 0, 0},
		{"4g.135gb", "4g", 0, 0},
		{"7g.269gb", "7g", 0, 0},
	}},
	{"GB300", 278, sevenSlices, "mig-parted", []profileRow{
		{"1g.35gb", "1g", 0, 0},
		{"1g.35gb+me", "1g+me", 0, 0},
		{"1g.70gb", "1g double", 0, 0},
		{"2g.70gb", "2g", 0, 0},
		{"3g.139gb", "3g", 0, 0},
		{"4g.139gb", "4g", 0, 0},
		{"7g.278gb", "7g", 0, 0},
	}},
	{"RTX PRO 6000", 96, fourSlicesPro, "MUG; nvidia-smi mig -lgip on a card", []profileRow{
		{"1g.24gb", "1g", 23674, 46},
		{"1g.24gb+me", "1g+me", 23674, 46},
		{"1g.24gb+gfx", "1g+gfx", 23674, 46},
		{"1g.24gb+me.all", "1g+me.all", 23674, 46},
		{"1g.24gb-me", "1g-me", 23674, 46},
		{"2g.48gb", "2g", 48517, 94},
		{"2g.48gb+gfx", "2g+gfx", 48517, 94},
		{"2g.48gb+me.all", "2g+me.all", 48517, 94},
		{"2g.48gb-me", "2g-me", 48517, 94},
		{"4g.96gb", "4g", 97280, 188},
		{"4g.96gb+gfx", "4g+gfx", 97280, 188},
	}},
	{"RTX PRO 5000", 48, twoSlices, "MUG: names and counts", []profileRow{
		{"1g.24gb", "1g", 0, 0},
		{"2g.48gb", "2g", 0, 0},
	}},
	{"RTX PRO 4500", 32, twoSlices, "MUG: names and counts", []profileRow{
		{"1g.16gb", "1g", 0, 0},
		{"2g.32gb", "2g", 0, 0},
	}},
}

// profileRow is one profile of a product.
type profileRow struct {
	name, shape string
	memory      MiB
	sm          int
}
