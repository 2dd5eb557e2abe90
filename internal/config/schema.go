package config

import (
	"encoding"
	"reflect"
	"strings"
)

// field is one field of a group, found by its yaml tag. The struct is the only
// schema: keys, environment variables, printing and the example follow it.
type field struct {
	path  string
	value reflect.Value
}

// key is the last part of the path.
func (f field) key() string { return f.path[strings.LastIndexByte(f.path, '.')+1:] }

// isGroup tells if the field has fields of its own.
func (f field) isGroup() bool { return f.value.Kind() == reflect.Struct && !isText(f.value) }

// isEmpty tells if nothing is in the field: an empty list is as good as none.
func (f field) isEmpty() bool {
	return f.value.IsZero() || f.value.Kind() == reflect.Slice && f.value.Len() == 0
}

// isGroups tells if the field is a map of groups whose keys the user chooses.
func (f field) isGroups() bool {
	return f.value.Kind() == reflect.Map && f.value.Type().Elem().Kind() == reflect.Struct
}

// member is a copy of one group of a map of groups, as a field that can be
// written to. set puts it back.
func (f field) member(key string) field {
	group := reflect.New(f.value.Type().Elem()).Elem()
	if value := f.value.MapIndex(reflect.ValueOf(key)); value.IsValid() {
		group.Set(value)
	}
	return field{path: join(f.path, printable(key)), value: group}
}

// set puts a group into a map of groups.
func (f field) set(key string, member field) {
	f.value.SetMapIndex(reflect.ValueOf(key), member.value)
}

// fieldsOf lists the fields of a group in the order of the struct. path is the
// group's own, empty for the root.
func fieldsOf(group reflect.Value, path string) []field {
	var fields []field
	for i := range group.NumField() {
		key := group.Type().Field(i).Tag.Get("yaml")
		if key != "" {
			fields = append(fields, field{path: join(path, key), value: group.Field(i)})
		}
	}
	return fields
}

// leaves lists the fields of the group that ptr points to, those of groups in
// it included, without the groups themselves. A map of groups is one leaf.
func leaves(ptr any, path string) []field {
	var all []field
	for _, f := range fieldsOf(reflect.ValueOf(ptr).Elem(), path) {
		if f.isGroup() {
			all = append(all, leaves(f.value.Addr().Interface(), f.path)...)
		} else {
			all = append(all, f)
		}
	}
	return all
}

// isText tells if the value reads and writes itself as text.
func isText(v reflect.Value) bool {
	_, ok := v.Addr().Interface().(encoding.TextUnmarshaler)
	return ok
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// envName is the environment variable of a path: kafka.tls.ca_file is stated
// by CDCPUB_KAFKA_TLS_CA_FILE.
func envName(path string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(path, ".", "_"))
}

const envPrefix = "CDCPUB_"
