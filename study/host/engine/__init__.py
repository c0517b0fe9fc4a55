"""Container engines: their command lines, their images, what they are asked, and where runs
execute."""
