package record

import "errors"

var errTODO = errors.New("not written yet")

func validate(set []byte, o *ValidateOptions) (Validated, error) { return Validated{}, errTODO }
func (b Batch) each(limit int, f func(*Record) error) error      { return errTODO }
func convertDown(set []byte, o ConvertOptions) ([]byte, error)   { return nil, errTODO }
