import theme from 'vitepress/theme'
import './wide-pictures.css'

// biome-ignore lint/style/noDefaultExport: VitePress reads it so
export default theme
