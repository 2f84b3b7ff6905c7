package landing

// What the tests outside of the package see beside what it exports.
var (
	Constrain = constrain
	TypesOf   = typesOf
)
