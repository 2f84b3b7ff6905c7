package fieldpath

import "reflect"

// WantType says in words what a field of a Go type takes in JSON.
func WantType(of reflect.Type) string {
	switch of.Kind() {
	case reflect.Pointer:
		return WantType(of.Elem())
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	case reflect.Int32:
		return "a whole number of 32 bits without quotes"
	case reflect.Int, reflect.Int64:
		return "a whole number without quotes"
	case reflect.Float32, reflect.Float64:
		return "a number without quotes"
	case reflect.Slice:
		return "a list"
	}
	if of.Kind() == reflect.Map && of.Elem().Kind() != reflect.Interface {
		return "an object, each value of which is " + WantType(of.Elem())
	}
	return "an object"
}
